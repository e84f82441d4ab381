SELECT 'document ' || id || ' has another text than it was seeded with'
FROM shop.documents
WHERE md5((body - 'stock')::text) <> checksum
UNION ALL
SELECT 'document ' || id || ' is lost' FROM shop.document_originals WHERE id NOT IN (SELECT id FROM shop.documents)
UNION ALL
SELECT 'document ' || id || ' has no number for a stock' FROM shop.documents
WHERE jsonb_typeof(body -> 'stock') IS DISTINCT FROM 'number'
