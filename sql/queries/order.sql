SELECT id, owner_id, title, description, price_cents, stock FROM shop.items WHERE id = $1;
SELECT id, name FROM shop.users WHERE id = $1;
SELECT id, user_id, body FROM shop.comments WHERE item_id = $1 ORDER BY id;
