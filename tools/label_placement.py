"""Places the labels of points on matplotlib axes so that they overlap nothing and every one can be told to be whose.

Beside its point where there is room; the others in one column with a line from each to its point. Everything is in pixels but the
points that are given.
"""
import math


class TooMany(Exception):
    """Labels that no column holds."""


class Placer:
    ROUNDS = 3  # in each, every label moves to what is best as the others stand
    LONGEST = 4.5  # line from a label to its point, in sizes of the font, before the label goes into the column

    def __init__(self, axes, fontsize=8):
        self.axes, self.fontsize = axes, fontsize
        self.renderer = axes.figure.canvas.get_renderer()
        self.frame = axes.get_window_extent(self.renderer)
        self.unit = fontsize * axes.figure.dpi / 72  # the font's size in pixels
        self.texts, self.blocked = [], []  # boxes (x0, y0, x1, y1) that no label is put on, and that it is better not put on

    def block_text(self, text, angle=0):
        """What a text covers; a turned one as boxes along its middle."""
        box = text.get_window_extent(self.renderer)
        if not angle:
            self.texts.append((box.x0, box.y0, box.x1, box.y1))
            return
        half, steps = 0.8 * self.unit, 24
        for i in range(steps):
            t = (i + 0.5) / steps
            x, y = box.x0 + t * box.width, box.y0 + (t if angle > 0 else 1 - t) * box.height
            self.texts.append((x - half, y - half, x + half, y + half))

    def block_line(self, xs, ys, half=3):
        points = self.axes.transData.transform(list(zip(xs, ys)))
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            steps = max(1, int(math.hypot(x1 - x0, y1 - y0) / 10))
            for i in range(steps + 1):
                x, y = x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps
                self.blocked.append((x - half, y - half, x + half, y + half))

    def place(self, points, texts, colors):
        """Draws the labels of points in data coordinates; gives their boxes."""
        if not texts:
            return []
        pixels = [tuple(p) for p in self.axes.transData.transform(points)]
        sizes = [self.size_of(text) for text in texts]
        half = 0.6 * self.unit
        marks = [(x - half, y - half, x + half, y + half) for x, y in pixels]
        boxes = self.beside(pixels, sizes, marks)
        ends = [nearest(box, pixel) for box, pixel in zip(boxes, pixels)]
        crowded = self.crowded(pixels, boxes, marks)
        if crowded:
            columns = [self.column(members, pixels, sizes, marks, boxes, ends)
                       for members in (crowded, self.with_neighbours(crowded, pixels), list(range(len(texts))))]
            columns = [column for column in columns if column]
            if not columns:
                raise TooMany(f"{len(texts)} labels do not fit into the picture")
            for i, box, end in min(columns, key=lambda column: column[0])[1]:
                boxes[i], ends[i] = box, end
        for box, end, pixel, point, text, color in zip(boxes, ends, pixels, points, texts, colors):
            self.draw(box, end, pixel, point, text, color)
        return boxes

    def size_of(self, text):
        probe = self.axes.text(0, 0, text, fontsize=self.fontsize, transform=None)
        box = probe.get_window_extent(self.renderer)
        probe.remove()
        return box.width, box.height

    def inside(self, box):
        return self.frame.x0 <= box[0] and self.frame.y0 <= box[1] and box[2] <= self.frame.x1 and box[3] <= self.frame.y1

    def beside(self, pixels, sizes, marks):
        boxes = [None] * len(pixels)
        reach = [widened(mark, 7 * self.unit + max(size)) for mark, size in zip(marks, sizes)]
        near = [[block for block in self.blocked if overlap(block, area)] for area in reach]
        for _ in range(self.ROUNDS):
            for i in sorted(range(len(pixels)), key=lambda j: pixels[j]):
                others = [(pixels[j], box) for j, box in enumerate(boxes) if box and j != i]
                boxes[i] = min(self.candidates(pixels[i], sizes[i]),
                               key=lambda box: self.cost(box, pixels[i], marks, others, near[i]))
        return boxes

    def candidates(self, pixel, size):
        (x, y), (width, height) = pixel, size
        for ring in range(5):
            away = (0.9 + 0.9 * ring) * self.unit
            for step in range(12):
                cos, sin = math.cos(2 * math.pi * step / 12), math.sin(2 * math.pi * step / 12)
                x0 = x + away * cos - width * (1 - cos) / 2  # to the left, to the right, or in the middle
                y0 = y + away * sin - height * (1 - sin) / 2
                yield (x0, y0, x0 + width, y0 + height)

    def cost(self, box, pixel, marks, others, blocked):
        wide = widened(box, 0.15 * self.unit)
        leader = (pixel, nearest(box, pixel))
        cost = math.dist(*leader) / self.unit + (0 if box[0] >= pixel[0] else 0.5)  # readers look to the right of a point first
        cost += 0 if self.inside(wide) else 1e6
        cost += 1000 * sum(overlap(wide, other) > 0 for _, other in others)
        cost += 100 * sum(overlap(wide, mark) > 0 for mark in marks)
        cost += 100 * any(overlap(wide, text) > 0 for text in self.texts)
        cost += 5 * sum(overlap(wide, block) for block in blocked) / self.unit**2
        for other_pixel, other in others:
            other_leader = (other_pixel, nearest(other, other_pixel))
            cost += 100 * (crosses(leader, other_leader) or meets(leader, other) or meets(other_leader, box))
            cost += 10 * self.misleads(box, pixel, other_pixel)
        return cost

    def misleads(self, box, pixel, other):
        """Whether a label seems to be that of another point, which is not in the same place."""
        own = math.dist(pixel, nearest(box, pixel))
        return math.dist(pixel, other) > 0.7 * self.unit and math.dist(other, nearest(box, other)) < own + 0.4 * self.unit

    def crowded(self, pixels, boxes, marks):
        """The labels whose absence leaves the others clear."""
        leaders = [(pixel, nearest(box, pixel)) for pixel, box in zip(pixels, boxes)]
        out = set()
        for i, (leader, box) in enumerate(zip(leaders, boxes)):
            covers = any(overlap(box, other) > 0 for other in marks + self.texts)
            if covers or not self.inside(box) or math.dist(*leader) > self.LONGEST * self.unit:
                out.add(i)
        while True:
            kept = [i for i in range(len(boxes)) if i not in out]
            conflicts = {i: sum(overlap(boxes[i], boxes[j]) > 0 or meets(leaders[i], boxes[j]) or meets(leaders[j], boxes[i]) or
                                crosses(leaders[i], leaders[j]) or self.misleads(boxes[i], pixels[i], pixels[j])
                                for j in kept if j != i) for i in kept}
            worst = max(kept, key=conflicts.get, default=None)
            if worst is None or not conflicts[worst]:
                return sorted(out)
            out.add(worst)

    def with_neighbours(self, members, pixels):
        """... and the points near any of them, and those near these."""
        found, rest = list(members), [i for i in range(len(pixels)) if i not in members]
        for i in found:  # which grows
            near = [j for j in rest if math.dist(pixels[i], pixels[j]) < 4 * self.unit]
            found += near
            rest = [j for j in rest if j not in near]
        return sorted(found)

    def column(self, members, pixels, sizes, marks, boxes, ends):
        """(cost, [(label, box, end of its line)]): the members' labels below each other, where they and their lines are least in
        the way; None where there is no room."""
        kept = [(boxes[i], (pixels[i], ends[i])) for i in range(len(boxes)) if i not in members]
        width, height = max(sizes[i][0] for i in members), 1.15 * max(sizes[i][1] for i in members)
        total, gap = len(members) * height, 0.5 * self.unit
        places = []
        for x in spread(self.frame.x0 + gap, self.frame.x1 - width - gap, 40):
            for y in spread(self.frame.y0 + gap, self.frame.y1 - total - gap, 25):
                whole = widened((x, y, x + width, y + total), gap)
                if not any(overlap(whole, box) for box, _ in kept) and not any(overlap(whole, mark) for mark in marks):
                    covered = sum(overlap(whole, block) for block in self.blocked)
                    covered += 20 * sum(overlap(whole, text) for text in self.texts)
                    far = sum(math.dist(pixels[i], nearest(whole, pixels[i])) for i in members)
                    places.append((covered / self.unit**2 + far / self.unit, x, y))
        best = None
        for cost, x, y in sorted(places)[:40]:
            rows = self.rows_of(members, pixels, sizes, x, y, width, height)
            leaders = [(pixels[i], end) for i, _, end in rows]
            cost += sum(math.dist(*leader) for leader in leaders + [leader for _, leader in kept]) / self.unit
            cost += 30 * sum(meets(leader, box) for leader in leaders for box, _ in kept)
            cost += 30 * sum(crosses(leader, other) for leader in leaders for _, other in kept)
            cost += 30 * sum(meets(leaders[a], rows[b][1]) for a in range(len(rows)) for b in range(len(rows)) if a != b)
            if best is None or cost < best[0]:
                best = (cost, rows)
        return best

    def rows_of(self, members, pixels, sizes, x, y, width, height):
        """(label, box, end of its line) of each row, upwards. Lines that are the shortest in sum do not cross."""
        centres = [y + (i + 0.5) * height for i in range(len(members))]
        order = self.order_of([pixels[i] for i in members], [(x, centre) for centre in centres], x + width)
        rows = []
        for centre, i in zip(centres, (members[k] for k in order)):
            w, h = sizes[i]
            left = pixels[i][0] <= x + width / 2  # of the column; else the text is ranged right
            x0 = x if left else x + width - w
            rows.append((i, (x0, centre - h / 2, x0 + w, centre + h / 2), (x if left else x + width, centre)))
        return rows

    @staticmethod
    def order_of(pixels, ends, right):
        """The label of each place: exchanged while that makes the lines shorter in sum."""
        order = sorted(range(len(pixels)), key=lambda i: pixels[i][1])

        def length(place, i):
            end = ends[place]
            return min(math.dist(pixels[i], end), math.dist(pixels[i], (right, end[1])))

        better = True
        while better:
            better = False
            for a in range(len(order)):
                for b in range(a):
                    now = length(a, order[a]) + length(b, order[b])
                    if length(a, order[b]) + length(b, order[a]) < now - 1e-6:
                        order[a], order[b] = order[b], order[a]
                        better = True
        return order

    def draw(self, box, end, pixel, point, text, color):
        data = self.axes.transData.inverted()
        if math.dist(end, pixel) > 1.2 * self.unit:
            x, y = data.transform(end)
            self.axes.plot([point[0], x], [point[1], y], color="#777777", linewidth=0.6, zorder=3)
        x, y = data.transform((box[0], box[1]))
        halo = dict(facecolor="white", edgecolor="none", alpha=0.8, pad=0.4)
        self.axes.text(x, y, text, fontsize=self.fontsize, color=color, ha="left", va="bottom", bbox=halo, zorder=5)


def spread(first, last, steps):
    return [first + (last - first) * i / (steps - 1) for i in range(steps)] if last >= first else []


def widened(box, by):
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def overlap(a, b):
    """The area that two boxes share."""
    return max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))


def nearest(box, pixel):
    return min(max(pixel[0], box[0]), box[2]), min(max(pixel[1], box[1]), box[3])


def crosses(a, b):
    def side(p, q, s):
        return (q[0] - p[0]) * (s[1] - p[1]) - (q[1] - p[1]) * (s[0] - p[0])

    return side(*a, b[0]) * side(*a, b[1]) < 0 and side(*b, a[0]) * side(*b, a[1]) < 0


def meets(segment, box):
    """Whether a segment meets a box, by points along it."""
    (x0, y0), (x1, y1) = segment
    if max(x0, x1) <= box[0] or min(x0, x1) >= box[2] or max(y0, y1) <= box[1] or min(y0, y1) >= box[3]:
        return False
    return any(box[0] < x0 + (x1 - x0) * t / 12 < box[2] and box[1] < y0 + (y1 - y0) * t / 12 < box[3] for t in range(1, 13))
