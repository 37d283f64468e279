"""The only wiring: what is heard -> fold -> decide -> store -> messages."""
