"""The topics memory split over processes that meet on a bus."""
