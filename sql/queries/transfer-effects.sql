SELECT row_to_json(moved)::text, count(*)
FROM (SELECT from_account, to_account, amount_cents FROM shop.ledger) AS moved
GROUP BY 1
