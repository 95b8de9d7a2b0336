import { databaseUrlOf } from './database-url';
import { ConfigError, loadConfig } from './load-config';

describe(databaseUrlOf.name, () => {
  it('names the setting that is missing', () => {
    expect(() => databaseUrlOf(loadConfig({}))).toThrow(ConfigError);
    expect(() => databaseUrlOf(loadConfig({}))).toThrow('DATABASE_URL is needed');
  });
});
