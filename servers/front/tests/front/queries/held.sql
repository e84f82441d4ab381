held
