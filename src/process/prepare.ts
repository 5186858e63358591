import { flushCompileCache } from 'node:module'
import { messageOf } from '../errors.ts'
import { codeDir } from './codeCache.js'

/** Run by `npm ci`. Loads the modules of a server, so that its first start finds them compiled, and builds the package. */
if (codeDir !== null) {
  await Promise.all([import('../main.ts'), import('koa-body')])
  const { prepareChildCode } = await import('../sandbox/childCode.ts')
  prepareChildCode(codeDir)
  flushCompileCache()
}

// A service without the package works, so an installation does not fail for it.
const { buildPackage, tscIn } = await import('../package/buildPackage.ts')
const { builtState, packageDir } = await import('../package/built.ts')
const tsc = tscIn(packageDir)
if (tsc !== null && (await builtState(packageDir)) !== 'current')
  await buildPackage(packageDir, tsc).catch((error: unknown) =>
    process.stderr.write(`svc: the package at /sdk/svc.tgz is not built: ${messageOf(error)}\n`),
  )
