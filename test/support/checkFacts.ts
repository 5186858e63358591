import { registerHooks } from 'node:module'

/**
 * `node --import` this: every fact that the process appends is checked against the catalogue. The classes of the event
 * stores are private to their modules, so the call is added to the source of those modules as they are loaded.
 */
const ADAPTER = /\/src\/adapters\/(embedded\/eventStore|eventstoredb)\/index\.ts$/
const CLASS = /^class (\w+) implements EventStore/m
const checks = JSON.stringify(new URL('./factCheck.ts', import.meta.url).href)

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    if (!ADAPTER.test(url)) return loaded
    const source = Buffer.from((loaded.source ?? '') as string | Uint8Array).toString()
    const name = CLASS.exec(source)?.[1]
    if (name === undefined)
      throw new Error(`Expected a class that implements EventStore in ${url}, found none`)
    const added = `import { checkAppends } from ${checks}\ncheckAppends(${name}.prototype)\n`
    return { ...loaded, source: `${source}\n${added}` }
  },
})
