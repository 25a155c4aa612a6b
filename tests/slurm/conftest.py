import sys
from pathlib import Path

# importlib mode leaves sys.path alone; the helpers are modules beside the tests.
sys.path.insert(0, str(Path(__file__).parent))
