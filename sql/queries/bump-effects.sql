SELECT row_to_json(bumped)::text, seen
FROM shop.views CROSS JOIN LATERAL (SELECT item_id) AS bumped
WHERE seen > 0
