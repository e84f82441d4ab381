SELECT row_to_json(signed_up)::text, count(*)
FROM (SELECT name FROM shop.members) AS signed_up
GROUP BY 1
