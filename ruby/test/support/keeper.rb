# frozen_string_literal: true

require "fiddle"

# A thread that holds the lock without letting it go, as a C extension does.
module Keeper
  USLEEP = Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)

  # Holds the lock for so many seconds while the calling thread waits for it.
  def keep(seconds)
    keeper = Thread.new do
      sleep(0.01) # the calling thread comes back from its wait
      USLEEP.call((seconds * 1e6).to_i)
    end
    keeper.name = "keeper"
    sleep(0.001) while keeper.alive?
    keeper.join
  end
end
