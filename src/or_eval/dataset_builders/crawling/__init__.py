"""What people really ask: pages of declared sources, and the questions and requests on them."""
