export { openRedisHints } from './hints.ts'
export { openRedisRateLimiter } from './rateLimiter.ts'
