"""`tilepass explain`: the decisions that passes take, with everything that led to them."""
