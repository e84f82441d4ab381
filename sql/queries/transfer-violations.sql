SELECT 'the accounts hold ' || sum(balance_cents) || ' cents, but were opened with ' || sum(opening_cents)
FROM shop.accounts
HAVING sum(balance_cents) <> sum(opening_cents)
UNION ALL
SELECT 'account ' || id || ' holds ' || balance_cents || ' cents, but ' || opening_cents + coalesce(moved_cents, 0)
           || ' by the ledger'
FROM shop.accounts LEFT JOIN (
    SELECT account, sum(cents)
    FROM shop.ledger
        CROSS JOIN LATERAL (VALUES (from_account, -amount_cents::int8), (to_account, amount_cents)) AS side (account, cents)
    GROUP BY account
) AS by_account (account, moved_cents) ON account = id
WHERE balance_cents <> opening_cents + coalesce(moved_cents, 0)
