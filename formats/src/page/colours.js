// Colours: Okabe and Ito's for kinds, which people with any colour vision tell apart, and scales whose lightness tells as
// much as their hue.

const THEMES = {
  light: {
    back: '#f6f7f9', box: '#ffffff', ink: '#17202a', faint: '#5c6773', edge: '#8a96a3', line: '#7d8b99', frame: '#c9d0d8', frameText: '#5c6773',
    tiers: ['#e7f1fa', '#fdf1de', '#e5f3ec', '#f6eaf2', '#eeeeee'], accent: '#0062a8', cell: '#b9cbdc',
    host: ['#b4c4d4', '#009e73', '#e0a81c', '#d55e00', '#ffffff', '#cc79a7'],
    cable: ['#7d8b99', '#d55e00', '#d55e00', '#b8860b'], cut: '#a0307a', route: '#0062a8', found: '#d55e00',
    loads: ['#c3d7ee', '#93bfe2', '#5fa3d3', '#3d84bd', '#2a66a0', '#3b4a86', '#5a2a6b', '#8c1d4f'],
    change: ['#0062a8', '#6ba7d6', '#b9cfe2', '#c9ccd1', '#f0c6a4', '#e08a4a', '#a63c00'],
  },
  dark: {
    back: '#11161c', box: '#1d252e', ink: '#e6ebf0', faint: '#98a4b0', edge: '#5d6b79', line: '#6f7f8e', frame: '#35404b', frameText: '#98a4b0',
    tiers: ['#1c2c3c', '#33291a', '#1a3028', '#33222d', '#2a2a2a'], accent: '#6cb8f0', cell: '#3d5063',
    host: ['#4b5f73', '#18b98c', '#f0c648', '#ff7a1f', '#11161c', '#e59ac4'],
    cable: ['#6f7f8e', '#ff7a1f', '#ff7a1f', '#f0c648'], cut: '#ff8ad4', route: '#6cb8f0', found: '#ff7a1f',
    loads: ['#2b3f57', '#2f5d88', '#3a7db0', '#4f9dc0', '#79bda8', '#b6d47e', '#eedb5a', '#ffb03b'],
    change: ['#6cb8f0', '#4886b8', '#3b5872', '#4a5159', '#7d5a3e', '#c77a3c', '#ffa04d'],
  },
};

const colours = {
  name: 'light',
  get now() { return THEMES[this.name]; },
  set(name) {
    this.name = name;
    document.documentElement.dataset.theme = name;
  },
  /** As the browser is set, unless the reader chose. */
  begin() {
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    this.set(dark.matches ? 'dark' : 'light');
    dark.addEventListener('change', () => { this.set(dark.matches ? 'dark' : 'light'); view.redraw(); });
  },
};
