SELECT id, owner_id, title, description, price_cents, stock FROM shop.items WHERE id = ANY ($1) ORDER BY id
