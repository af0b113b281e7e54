"""What users call: signatures and their documentation. call.py finds the plan of a call, plan.py runs it."""
