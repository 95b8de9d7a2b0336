/** Said of `filtered` and `flagged`. */
export const filteredCount = 'How many of its pictures are not there, because the filter of the key has flagged them.';
export const flaggedIndexes = 'Indexes in `images` of those that it has flagged, where it only reports.';
