SELECT email || ' signed up ' || count(*) || ' times' FROM shop.members GROUP BY email HAVING count(*) > 1
