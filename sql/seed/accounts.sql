INSERT INTO shop.accounts (id, user_id, opening_cents, balance_cents)
SELECT id, 1 + (id - 1) % (SELECT pg_temp.rows(10000)), cents, cents
FROM generate_series(1, pg_temp.rows(10000)) AS id,
     LATERAL (SELECT 100000 + pg_temp.pick(md5('account ' || id), 1) % 900000) AS opening (cents);
