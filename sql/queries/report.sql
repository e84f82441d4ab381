SELECT date_trunc('hour', created_at, 'UTC') AS hour, count(*) AS comments, count(DISTINCT user_id) AS commenters,
       sum(length(body)) AS letters
FROM shop.comments
WHERE created_at >= timestamptz '2025-01-01 00:00:00+00' + ($1 - 1) * interval '24 hours'
    AND created_at < timestamptz '2025-01-01 00:00:00+00' + ($1 + 29) * interval '24 hours'
GROUP BY 1
ORDER BY 1
