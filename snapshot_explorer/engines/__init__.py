"""Where rows are read and conditions are evaluated."""
