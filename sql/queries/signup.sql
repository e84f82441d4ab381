INSERT INTO shop.members (email, name) VALUES ($1, $2) ON CONFLICT (email) DO NOTHING RETURNING name
