/** Rows of five dots, from the top, as hexadecimal bytes: letters that need no font on the machine. */
const glyphs: Readonly<Record<string, string>> = {
  A: '0E11111F111111',
  B: '1E11111E11111E',
  C: '0E11101010110E',
  D: '1E11111111111E',
  E: '1F10101E10101F',
  F: '1F10101E101010',
  G: '0E11101711110F',
  H: '1111111F111111',
  I: '0E04040404040E',
  J: '0702020202120C',
  K: '11121418141211',
  L: '1010101010101F',
  M: '111B1515111111',
  N: '11111915131111',
  O: '0E11111111110E',
  P: '1E11111E101010',
  Q: '0E11111115120D',
  R: '1E11111E141211',
  S: '0F10100E01011E',
  T: '1F040404040404',
  U: '1111111111110E',
  V: '11111111110A04',
  W: '1111111515150A',
  X: '11110A040A1111',
  Y: '1111110A040404',
  Z: '1F01020408101F',
  '0': '0E11131519110E',
  '1': '040C040404040E',
  '2': '0E11010204081F',
  '3': '1F02040201110E',
  '4': '02060A121F0202',
  '5': '1F101E0101110E',
  '6': '0608101E11110E',
  '7': '1F010204080808',
  '8': '0E11110E11110E',
  '9': '0E11110F01020C',
  ' ': '00000000000000',
};
/** An empty frame for an unsupported letter. */
const unknown = '1F11111111111F';

/** Dots per letter, without and with the gap to the next. */
const columns = 5;
const advance = columns + 1;
const rows = 7;

/** Width of a text in dots. */
export function widthOf(text: string): number {
  return [...text].length * advance - 1;
}

/** The dots of a text, from its upper left corner. */
export function dotsOf(text: string): { row: number; column: number }[] {
  return [...text.toUpperCase()].flatMap((letter, index) => {
    const bits = Buffer.from(glyphs[letter] ?? unknown, 'hex');
    return Array.from({ length: rows * columns }, (_, place) => ({
      row: Math.floor(place / columns),
      column: place % columns,
    }))
      .filter(({ row, column }) => bits[row] & (1 << (columns - 1 - column)))
      .map(({ row, column }) => ({ row, column: index * advance + column }));
  });
}
