/** The keyboard of a terminal. */
export type Keyboard = Pick<
  NodeJS.ReadStream,
  'setRawMode' | 'setEncoding' | 'on' | 'off' | 'resume' | 'pause'
>

/** What a key does. Other keys do nothing. */
export type Keys = Readonly<Record<string, () => void>>

/** Reads single keys, without showing them, until the returned function is called. Ctrl-C is a key then. */
export const readKeys = (keyboard: Keyboard, keys: Keys): (() => void) => {
  const onData = (text: string): void => {
    for (const key of text) if (Object.hasOwn(keys, key)) keys[key]?.()
  }
  keyboard.setRawMode(true)
  keyboard.setEncoding('utf8')
  keyboard.on('data', onData)
  keyboard.resume()
  return () => {
    keyboard.off('data', onData)
    keyboard.setRawMode(false)
    keyboard.pause()
  }
}
