// Search in the titles and the text of all pages. Without it the site works as well.
(() => {
	const form = document.querySelector('form[role=search]');
	const input = form.querySelector('input');
	const list = form.querySelector('ul');
	const root = document.body.dataset.root;
	let pages;
	form.hidden = false;
	form.addEventListener('submit', e => {
		e.preventDefault();
		const first = list.querySelector('a');
		if (first) location.href = first.href;
	});
	input.addEventListener('input', async () => {
		pages ??= await (await fetch(root + 'search.json')).json();
		const words = input.value.toLowerCase().split(/\s+/).filter(w => w);
		list.replaceChildren();
		if (!words.length) return;
		const score = p => {
			const title = p.t.toLowerCase(), text = p.x.toLowerCase();
			let sum = 0;
			for (const w of words) {
				const n = text.split(w).length - 1;
				if (!n && !title.includes(w)) return 0;
				sum += Math.min(n, 20) + (title.includes(w) ? 50 : 0);
			}
			return sum;
		};
		const hits = pages.map(p => [score(p), p]).filter(h => h[0]).sort((a, b) => b[0] - a[0]).slice(0, 8);
		for (const [, p] of hits) {
			const item = document.createElement('li'), a = document.createElement('a'), small = document.createElement('small');
			const at = Math.max(0, p.x.toLowerCase().indexOf(words[0]) - 40);
			a.href = root + p.p;
			a.textContent = p.t;
			small.textContent = '… ' + p.x.slice(at, at + 120) + ' …';
			a.append(small);
			item.append(a);
			list.append(item);
		}
	});
})();
