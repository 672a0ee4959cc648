"""Pictures of the guide: curves as SVG."""

import numpy as np

WIDTH, HEIGHT, EDGE = 640, 280, 34
COLORS = ["#9aa5b1", "#1f6feb", "#d1495b", "#2d936c"]


def svg(curves):
    """Curves by name, each over its number of elements, with a legend and the range of values."""
    arrays = {name: np.asarray(values, dtype=float) for name, values in curves.items()}
    low, high = min(a.min() for a in arrays.values()), max(a.max() for a in arrays.values())
    lines = []
    for k, (name, a) in enumerate(arrays.items()):
        x = EDGE + np.arange(len(a)) * (WIDTH - 2 * EDGE) / max(len(a) - 1, 1)
        y = HEIGHT - EDGE - (a - low) * (HEIGHT - 2 * EDGE) / (high - low)
        points = " ".join(f"{p:.1f},{q:.1f}" for p, q in zip(x, y))
        lines.append(f'<polyline fill="none" stroke="{COLORS[k]}" stroke-width="1.5" points="{points}"/>')
        lines.append(f'<text x="{EDGE + 150 * k}" y="20" fill="{COLORS[k]}">{name}</text>')
    lines.append(f'<text x="2" y="{HEIGHT - EDGE}" fill="#666">{low:.3g}</text><text x="2" y="{EDGE}" fill="#666">{high:.3g}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *lines, "</svg>\n"])
