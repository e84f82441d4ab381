-- A thousand at every scale, since `export` reads them all: twelve types, nulls in every column but the key, and the
-- values that encoders get wrong.
INSERT INTO shop.measurements (id, sensor, ticks, valid, reading, exact, label, taken_at, day, device, details, samples)
SELECT id,
       CASE WHEN id % 11 > 0 THEN pg_temp.pick(hash, 1) % 65536 - 32768 END,
       CASE WHEN id % 13 > 0 THEN (pg_temp.pick(hash, 1) - 8388608)::int8 * 549755813888 + pg_temp.pick(hash, 2) END,
       CASE WHEN id % 7 > 0 THEN pg_temp.pick(hash, 2) % 2 = 0 END,
       CASE WHEN id % 17 > 0 THEN
           CASE id % 100
               WHEN 1 THEN 1e300 WHEN 2 THEN 1.5e-7 WHEN 3 THEN 1e15 WHEN 4 THEN 1e-5 WHEN 5 THEN '-0'
               WHEN 6 THEN 0.1::float8 + 0.2::float8 WHEN 7 THEN 'NaN' WHEN 8 THEN '-Infinity'
               ELSE (pg_temp.pick(hash, 3) - 8388608)::float8 / 1000::float8
           END
       END,
       CASE WHEN id % 19 > 0 THEN
           (pg_temp.pick(hash, 4) - 8388608 || CASE WHEN id % 6 > 0 THEN '.' || substr('000120340056700', 1, id % 6 * 2) ELSE '' END
               || CASE id % 100 WHEN 9 THEN 'e20' WHEN 10 THEN 'e-12' ELSE '' END)::numeric
       END,
       CASE WHEN id % 23 > 0 THEN
           pg_temp.word(hash, 5, ARRAY['outdoors', 'in the "cold" room', 'café, rear wall', 'plain \ backslash', '倉庫',
               E'two\nlines\tand a tab', '', '<b>&amp;</b>', E'control \x01 character', '🌡 on the roof'])
       END,
       CASE WHEN id % 29 > 0 THEN
           timestamptz '2025-03-01 00:00:00+00' + id * interval '61 seconds'
               + CASE id % 4 WHEN 0 THEN interval '0' WHEN 1 THEN interval '0.5 seconds'
                     ELSE (pg_temp.pick(hash, 2) % 1000000) * interval '1 microsecond' END
       END,
       CASE WHEN id % 31 > 0 THEN date '1969-07-20' + pg_temp.pick(hash, 3) % 40000 END,
       CASE WHEN id % 37 > 0 THEN hash::uuid END,
       CASE WHEN id % 5 > 0 THEN
           jsonb_build_object('unit', pg_temp.word(hash, 1, ARRAY['°C', 'hPa', '%', 'lx']), 'offset',
               (pg_temp.pick(hash, 5) % 2000 - 1000) * 0.01, 'flags', jsonb_build_array(id % 2 = 0, NULL, id % 3))
       END,
       CASE id % 8
           WHEN 0 THEN NULL
           WHEN 1 THEN '{}'
           WHEN 2 THEN ARRAY[pg_temp.pick(hash, 1), NULL, -pg_temp.pick(hash, 2)]
           ELSE ARRAY[pg_temp.pick(hash, 1), pg_temp.pick(hash, 2), pg_temp.pick(hash, 3) - 8388608, pg_temp.pick(hash, 4)]
       END
FROM generate_series(1, 1000) AS id, md5('measurement ' || id) AS hash;
