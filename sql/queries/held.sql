SELECT 10 AS waited_ms
