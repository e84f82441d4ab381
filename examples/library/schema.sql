-- A library's loans: a schema that lanebench knows nothing of.

CREATE SCHEMA library;

CREATE TABLE library.loans (
    id     int8 PRIMARY KEY,
    branch text          NOT NULL,
    reader uuid          NOT NULL,
    title  text          NOT NULL,
    due    date          NOT NULL,
    fee    numeric(6, 2)             -- null unless something is to be paid
);

INSERT INTO library.loans (id, branch, reader, title, due, fee)
SELECT id,
       (ARRAY['harbour', 'market', 'school'])[1 + id % 3],
       md5('reader ' || id % 997)::uuid,
       'Volume ' || id % 4001,
       date '2026-01-01' + (id * 37 % 365)::int4,
       CASE WHEN id % 5 = 0 THEN id % 2000 / 100.0 END
FROM generate_series(1, 20000) AS id;

CREATE INDEX ON library.loans (branch, due);
ANALYZE library.loans;
