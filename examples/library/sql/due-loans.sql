SELECT id, reader, title, due, fee
FROM library.loans
WHERE branch = $1 AND due >= $2
ORDER BY due, id
LIMIT 10
