-- How the shop's rows are made. The same bytes on every machine and every PostgreSQL from 14 on: everything follows
-- from the row's id through md5, with no random(), no now(), no sorting of text and no time zone of the session.
--
-- The rows are in seed/, a file a table, so that a table can be put back without the others. Their order is free, since
-- nothing refers to anything before keys.sql, but for documents.sql, which copies document_originals.
--
-- By hand: cat schema.sql seed.sql seed/*.sql keys.sql | PGOPTIONS='-c lanebench.scale=1' psql -1

-- How many rows a table gets: its size at scale 1, times the scale, at least one.
CREATE OR REPLACE FUNCTION pg_temp.rows(at_scale_one int4) RETURNS int4 LANGUAGE sql STABLE AS $$
    SELECT greatest(1, round(at_scale_one * current_setting('lanebench.scale')::numeric))::int4
$$;

-- The n-th of five numbers in [0, 16777216) that a hash of 32 hexadecimal digits holds.
CREATE OR REPLACE FUNCTION pg_temp.pick(hash text, n int4) RETURNS int4 LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || substr(hash, 6 * n - 5, 6))::bit(24)::int4
$$;

CREATE OR REPLACE FUNCTION pg_temp.word(hash text, n int4, words text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT words[1 + pg_temp.pick(hash, n) % cardinality(words)]
$$;
