SELECT items.id, items.title, items.price_cents, items.created_at, users.name AS seller
FROM shop.items JOIN shop.users ON users.id = items.owner_id
WHERE items.id < $1
ORDER BY items.id DESC
LIMIT 20
