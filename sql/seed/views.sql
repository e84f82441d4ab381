INSERT INTO shop.views (item_id, seen)
SELECT id, 0 FROM generate_series(1, pg_temp.rows(100000)) AS id;
