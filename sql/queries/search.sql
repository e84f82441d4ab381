SELECT items.id, items.title, items.price_cents, round(rank * 1000000)::int4 AS rank_millionths
FROM shop.items,
     websearch_to_tsquery('english', $1) AS query,
     ts_rank(to_tsvector('english', items.title || ' ' || coalesce(items.description, '')), query) AS rank
WHERE to_tsvector('english', items.title || ' ' || coalesce(items.description, '')) @@ query
ORDER BY rank DESC, items.id
LIMIT 20
