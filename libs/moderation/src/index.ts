export { ModerationDownError, ModerationHook } from './moderation-hook';
export { PromptRules, readPromptRules } from './prompt-rules';
