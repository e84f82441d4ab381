SELECT id, body ->> 'title' AS title
FROM shop.documents
WHERE body @> jsonb_build_object('tags', jsonb_build_array($1::text))
ORDER BY id
LIMIT 20
