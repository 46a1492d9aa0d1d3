"""Having texts written: what writers are asked, and what is made of their replies."""
