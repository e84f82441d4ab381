UPDATE shop.documents SET body = jsonb_set(body, '{stock}', to_jsonb($2::int4)) WHERE id = $1
RETURNING id, (body ->> 'stock')::int4 AS stock
