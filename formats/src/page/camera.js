// What part of the picture is seen, and how large.

class Camera {
  constructor() { this.x = 0; this.y = 0; this.scale = 1; this.width = 1; this.height = 1; }

  /** Shows a rectangle of the picture, with room for the panel at the right. */
  show(x, y, width, height, right = 0) {
    const margin = 24;
    const free = Math.max(80, this.width - right - 2 * margin);
    this.scale = Math.min(free / width, Math.max(80, this.height - 2 * margin) / height, 4);
    this.x = x + width / 2 - (margin + free / 2) / this.scale;
    this.y = y + height / 2 - this.height / 2 / this.scale;
  }

  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const scale = Math.min(12, Math.max(0.005, this.scale * factor));
    this.x += atX / this.scale - atX / scale;
    this.y += atY / this.scale - atY / scale;
    this.scale = scale;
  }

  move(dx, dy) { this.x -= dx / this.scale; this.y -= dy / this.scale; }

  toPicture(x, y) { return [this.x + x / this.scale, this.y + y / this.scale]; }

  copy() { return Object.assign(new Camera(), this); }
}
