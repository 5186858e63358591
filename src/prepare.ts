import { flushCompileCache } from 'node:module'
import { openCodeCache } from './codeCache.ts'

/** Run by `npm ci`: loads what a server loads, so that the first start finds it compiled. */
const cacheDir = openCodeCache()
if (cacheDir !== null) {
  await import('./start.ts')
  await import('koa-body')
  const { prepareChildCode } = await import('./runtime/code.ts')
  prepareChildCode(cacheDir)
  flushCompileCache()
}
