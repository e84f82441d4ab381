INSERT INTO shop.views (item_id, seen)
SELECT DISTINCT views.item_id, 1
FROM unnest($1::int4[]) AS looked_at (item_id) JOIN shop.views ON views.item_id = looked_at.item_id
ORDER BY views.item_id
ON CONFLICT (item_id) DO UPDATE SET seen = views.seen + 1
RETURNING item_id
