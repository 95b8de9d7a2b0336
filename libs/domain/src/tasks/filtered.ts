/** Said of `filtered` and `flagged`. */
export const filteredCount =
  'How many of its pictures are not there, because the safety checker or the moderation has flagged them.';
export const flaggedIndexes =
  'Indexes in `images` of those that were flagged and are there, for a key whose filter is `report`.';
