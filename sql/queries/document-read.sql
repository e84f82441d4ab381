SELECT id, body FROM shop.documents WHERE id = $1
