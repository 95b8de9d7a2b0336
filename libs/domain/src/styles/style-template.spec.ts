import * as fc from 'fast-check';
import { applyTemplate, toTemplate } from './style-template';

const robot = { token: 'zwx', name: 'robot' };
const star = { token: 'qrs', name: 'star' };

describe(toTemplate.name, () => {
  it.each([
    ['the name alone', 'a robot in the rain', 'a {finetune} in the rain'],
    ['token and name as one', 'a zwx robot in the rain', 'a {finetune} in the rain'],
    ['name and token as one', 'robot zwx', '{finetune}'],
    ['a hyphen between them', 'a zwx-robot', 'a {finetune}'],
    ['the token alone', 'zwx at the sea', '{finetune} at the sea'],
    ['every occurrence', 'robot meets zwx robot, Robot.', '{finetune} meets {finetune}, {finetune}.'],
    ['the name twice in a row', 'robot robot', '{finetune} {finetune}'],
    ['any case', 'A ZWX   Robot', 'A {finetune}'],
    ['a weighted name', '(zwx robot:1.3)', '({finetune}:1.3)'],
    ['not a part of a word', 'robots, robotic zwxy, éxzwx', 'robots, robotic zwxy, éxzwx'],
    ['braces, which are doubled', 'a {b} {finetune} robot', 'a {{b}} {{finetune}} {finetune}'],
    ['the name in braces', '{robot}', '{{{finetune}}}'],
  ])('replaces %s', (_, prompt, template) => {
    expect(toTemplate(prompt, robot)).toBe(template);
  });

  it('prefers the longest match of token and name', () => {
    expect(toTemplate('a robot dog and a robot', { token: 'robot', name: 'robot dog' })).toBe(
      'a {finetune} and a {finetune}',
    );
    expect(toTemplate('red fox cub, fox', { token: 'red fox cub', name: 'fox' })).toBe('{finetune}, {finetune}');
  });

  it('treats special characters of a pattern in a name literally', () => {
    expect(toTemplate('a c++ (v.2) box, c+', { token: 'zwx', name: 'C++ (v.2)' })).toBe('a {finetune} box, c+');
  });

  it('finds a name in a script without spaces', () => {
    expect(toTemplate('一个机器人在跑', { token: 'zwx', name: '机器人' })).toBe('一个{finetune}在跑');
  });
});

describe(applyTemplate.name, () => {
  it('writes token and name at every placeholder', () => {
    expect(applyTemplate('{finetune} and {finetune}', star)).toBe('qrs star and qrs star');
  });

  it('stops as soon as the text is longer than allowed', () => {
    const words = { token: 'z'.repeat(64), name: 'n'.repeat(200) };
    expect(applyTemplate('{finetune}', words, 265)).toHaveLength(265);
    expect(applyTemplate('{finetune}', words, 264)).toBeUndefined();
    expect(applyTemplate('{finetune} '.repeat(100_000), words, 2000)).toBeUndefined();
    expect(applyTemplate('𝒳𝒳𝒳', words, 3)).toBe('𝒳𝒳𝒳');
  });

  it('restores literal braces', () => {
    expect(applyTemplate(toTemplate('{finetune} {{robot}} }{', robot), star)).toBe('{finetune} {{qrs star}} }{');
  });

  it('restores token and name before a space that bears a mark', () => {
    const text = 'zwx robot \u0308';
    expect(applyTemplate(toTemplate(text, robot), robot)).toBe(text);
  });

  it('writes a name with replacement patterns literally', () => {
    expect(applyTemplate('a {finetune}', { token: '$&', name: "$1 $'" })).toBe("a $& $1 $'");
  });

  it('restores any text with token and name side by side', () => {
    const part = fc.oneof(
      fc.constantFrom('{', '}', '{finetune}', '{{', ' ', 'zwx robot', 'a', '\\', '$&'),
      fc.string({ unit: 'binary', maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const text = parts.join(' ');
        fc.pre(!/robot|zwx/i.test(text.replace(/zwx robot/g, '')));
        expect(applyTemplate(toTemplate(text, robot), robot)).toBe(text);
      }),
    );
  });
});
