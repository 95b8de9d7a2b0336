import { chooseTheme, chosenTheme } from './theme';

/** Light or dark colours, or those of the system; the documentation has the same switch. */
export function ThemeSwitch() {
  return (
    <select
      class="theme"
      aria-label="Colours"
      value={chosenTheme()}
      onChange={({ currentTarget }) => chooseTheme(currentTarget.value)}
    >
      <option value="auto">Auto</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}
