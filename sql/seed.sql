-- The shop's rows. The same bytes on every machine and every PostgreSQL from 14 on: everything follows from the
-- row's id through md5, with no random(), no now(), no sorting of text and no time zone of the session.
--
-- By hand: PGOPTIONS='-c lanebench.scale=1' psql -1 -f schema.sql -f seed.sql -f keys.sql

-- How many rows a table gets: its size at scale 1, times the scale, at least one.
CREATE FUNCTION pg_temp.rows(at_scale_one int4) RETURNS int4 LANGUAGE sql STABLE AS $$
    SELECT greatest(1, round(at_scale_one * current_setting('lanebench.scale')::numeric))::int4
$$;

-- The n-th of five numbers in [0, 16777216) that a hash of 32 hexadecimal digits holds.
CREATE FUNCTION pg_temp.pick(hash text, n int4) RETURNS int4 LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || substr(hash, 6 * n - 5, 6))::bit(24)::int4
$$;

CREATE FUNCTION pg_temp.word(hash text, n int4, words text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT words[1 + pg_temp.pick(hash, n) % cardinality(words)]
$$;

INSERT INTO shop.users (id, name, email, created_at)
SELECT id,
       pg_temp.word(hash, 1, ARRAY['Ada', 'Bilal', 'Chloe', 'Dmitri', 'Esra', 'Femi', 'Greta', 'Hugo', 'Ines', 'Jun',
           'Kofi', 'Lena', 'Mateo', 'Nora', 'Oskar', 'Priya', 'Quentin', 'Rosa', 'Samir', 'Tove', 'Uma', 'Viktor',
           'Wanda', 'Yusuf'])
           || ' ' ||
           pg_temp.word(hash, 2, ARRAY['Abara', 'Berg', 'Castillo', 'Dubois', 'Eriksen', 'Fontana', 'Gruber',
           'Haddad', 'Ivanov', 'Jansen', 'Kowalski', 'Lindqvist', 'Moreau', 'Novak', 'Okafor', 'Petrov', 'Quispe',
           'Rossi', 'Sato', 'Tanaka', 'Ueda', 'Varga', 'Weber', 'Zhang']),
       'user' || id || '@shop.example',
       timestamptz '2023-01-01 00:00:00+00' + id * interval '53 minutes'
FROM generate_series(1, pg_temp.rows(10000)) AS id, md5('user ' || id) AS hash;

INSERT INTO shop.items (id, owner_id, title, description, price_cents, stock, created_at)
SELECT id,
       1 + pg_temp.pick(hash, 1) % pg_temp.rows(10000),
       pg_temp.word(hash, 2, ARRAY['Amber', 'Brass', 'Cedar', 'Cobalt', 'Copper', 'Cotton', 'Granite', 'Ivory', 'Linen',
           'Maple', 'Oak', 'Olive', 'Pewter', 'Scarlet', 'Slate', 'Walnut'])
           || ' ' ||
           pg_temp.word(hash, 3, ARRAY['armchair', 'basket', 'bookend', 'bowl', 'candlestick', 'clock', 'coat rack',
           'desk', 'doorbell', 'drawer', 'footstool', 'jug', 'kettle', 'lamp', 'lantern', 'mirror', 'picture frame',
           'shelf', 'teapot', 'tray', 'umbrella stand', 'vase', 'wardrobe', 'workbench'])
           || ' no. ' || id,
       CASE WHEN pg_temp.pick(hash, 4) % 8 > 0 THEN
           pg_temp.word(hash, 4, ARRAY['Made by hand in a small workshop', 'Found in an attic and restored with care',
           'Used for one season only', 'One of a set of six', 'A copy of a museum piece', 'Sturdy, simple and plain',
           'Older than it looks'])
           || ', ' ||
           pg_temp.word(hash, 5, ARRAY['with a few marks that tell its story', 'and still as good as new',
           'but the box is missing', 'and ready to be sent tomorrow', 'to be picked up in person',
           'with a spare part included', 'and easy to take apart', 'sold because we are moving'])
           || '. Measures ' || 10 + pg_temp.pick(hash, 1) % 90 || ' by ' || 10 + pg_temp.pick(hash, 2) % 90
           || ' by ' || 5 + pg_temp.pick(hash, 3) % 60 || ' cm.'
       END,
       100 + pg_temp.pick(hash, 5) % 49900,
       pg_temp.pick(hash, 3) % 200,
       timestamptz '2024-01-01 00:00:00+00' + id * interval '311 seconds'
FROM generate_series(1, pg_temp.rows(100000)) AS id, md5('item ' || id) AS hash;

INSERT INTO shop.comments (id, item_id, user_id, body, created_at)
SELECT id,
       1 + pg_temp.pick(hash, 1) % pg_temp.rows(100000),
       1 + pg_temp.pick(hash, 2) % pg_temp.rows(10000),
       pg_temp.word(hash, 3, ARRAY['Is this still available?', 'Lovely colour.', 'Mine arrived yesterday.',
           'A fair price, I think.', 'I have been looking for one of these.', 'My sister has the same one.',
           'Would you take a little less?', 'Could you post a picture of the back?'])
           || ' ' ||
           pg_temp.word(hash, 4, ARRAY['I could collect it on Saturday.', 'Does it come with a warranty?',
           'The handle looks worn, though.', 'It is smaller than I expected.', 'Thanks for the quick answer!',
           'Please keep it for me.', 'I would buy it again.', 'How heavy is it?']),
       timestamptz '2025-01-01 00:00:00+00' + id * interval '97 seconds'
FROM generate_series(1, pg_temp.rows(300000)) AS id, md5('comment ' || id) AS hash;

INSERT INTO shop.accounts (id, user_id, balance_cents)
SELECT id,
       1 + (id - 1) % pg_temp.rows(10000),
       100000 + pg_temp.pick(md5('account ' || id), 1) % 900000
FROM generate_series(1, pg_temp.rows(10000)) AS id;

INSERT INTO shop.fortunes (id, message) VALUES
    (1, 'A queue is a promise that somebody else will wait.'),
    (2, 'The fastest query is the one that was never sent.'),
    (3, 'Averages comfort. Percentiles inform.'),
    (4, 'Every timeout was once somebody''s guess.'),
    (5, '<script>alert("Escape me, or be famous.");</script>'),
    (6, 'Two threads and one lock make a sequential program with extra steps.'),
    (7, 'Żółw śpi, zając czeka na połączenie: 兎は待つ。'),
    (8, 'Retry once for luck, twice for trouble.'),
    (9, 'An index nobody reads is a tax everybody pays.'),
    (10, 'It was fast on my machine, and that is where it stayed.'),
    (11, 'Cache nothing until you have measured something.'),
    (12, 'When the pool is full, even good swimmers stand in line.');
