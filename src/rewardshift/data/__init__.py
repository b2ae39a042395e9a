"""Fixed data sets, for offline agents."""

from rewardshift.errors import needs

with needs("agents"):
    from rewardshift.data.dataset import Dataset, Subset
    from rewardshift.data.loading import load_dataset
    from rewardshift.data.minari_sets import minari_dataset

__all__ = ["Dataset", "Subset", "load_dataset", "minari_dataset"]
