SELECT 'item ' || id || ' has no views' FROM shop.items WHERE id NOT IN (SELECT item_id FROM shop.views)
UNION ALL
SELECT 'item ' || item_id || ' was seen ' || seen || ' times' FROM shop.views WHERE seen < 0
