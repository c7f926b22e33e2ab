"""The models that ship, one module or package per interface; `commutant.lang.load.SHIPPED` lists them."""
