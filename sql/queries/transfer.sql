SELECT id, balance_cents FROM shop.accounts WHERE id IN ($1, $2) ORDER BY id FOR UPDATE;
UPDATE shop.accounts
SET balance_cents = balance_cents + CASE WHEN id = $2 THEN $3::int4 ELSE 0 END - CASE WHEN id = $1 THEN $3::int4 ELSE 0 END
WHERE id IN ($1, $2);
INSERT INTO shop.ledger (from_account, to_account, amount_cents) VALUES ($1, $2, $3)
RETURNING from_account, to_account, amount_cents;
