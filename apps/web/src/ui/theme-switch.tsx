import { chooseTheme, chosenTheme } from './theme';

/** The documentation has the same switch. */
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
